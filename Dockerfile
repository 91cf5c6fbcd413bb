# One image for every role; the command chooses the role:
#
#   docker build --tag geomill:0.1.0 .
#   docker run geomill:0.1.0 gateway --host 0.0.0.0
#
# The process is not root. It writes only to /var/lib/geomill and /tmp, so the root file system may be read-only.

FROM node:22-bookworm-slim AS console
WORKDIR /build/console
COPY console/package.json console/package-lock.json ./
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY console ./
RUN node_modules/.bin/vite build --logLevel warn

FROM python:3.13-slim-bookworm AS packages
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /build
COPY requirements-server.lock requirements-build.lock ./
RUN python -m venv /opt/geomill && \
    /opt/geomill/bin/pip install --require-hashes --only-binary :all: --no-binary version-parser \
        --requirement requirements-server.lock && \
    python -m venv /opt/builder && \
    /opt/builder/bin/pip install --require-hashes --requirement requirements-build.lock
COPY pyproject.toml README.md LICENSE ./
COPY script/require_console.py script/
COPY src src
COPY --from=console /build/src/geomill/console_files src/geomill/console_files
RUN /opt/builder/bin/pip wheel --no-deps --no-build-isolation --wheel-dir wheels . && \
    /opt/geomill/bin/pip install --no-deps wheels/geomill-*.whl && \
    /opt/geomill/bin/python -m compileall -q /opt/geomill/lib

FROM python:3.13-slim-bookworm
# GDAL, inside rasterio's wheel, needs libexpat; everything else is in the wheels.
# hadolint ignore=DL3008
RUN apt-get update && \
    apt-get install --yes --no-install-recommends libexpat1 && \
    rm -rf /var/lib/apt/lists/* && \
    groupadd --gid 10001 geomill && \
    useradd --uid 10001 --gid 10001 --home-dir /var/lib/geomill --no-create-home --shell /usr/sbin/nologin geomill && \
    install --directory --owner geomill --group geomill --mode 0700 \
        /var/lib/geomill /var/lib/geomill/bronze /var/lib/geomill/silver /var/lib/geomill/external \
        /var/lib/geomill/scratch
COPY --from=packages /opt/geomill /opt/geomill
ENV PATH=/opt/geomill/bin:$PATH HOME=/var/lib/geomill GEOMILL_DATA=/var/lib/geomill \
    PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
USER 10001:10001
WORKDIR /var/lib/geomill
EXPOSE 8000 8001
ENTRYPOINT ["geomill"]
CMD ["--help"]
