"""The HTTP API. `create_app` makes it from what it is given; importing it does nothing.

app         puts it together
gateway     what a request needs: connections, workflows, streams, figures
access      who may call which route: one table
guard       applies it, before anything of a request is read
credentials, authentication, tokens, rates
            from the headers to the principal; how often
problems    every error as an RFC 9457 problem document, by one table
limits      how large a body may be; who may call from a browser
models      what goes in and out
routes      one file for each noun
streams     jobs as they happen
figures     what /metrics shows
"""

from geomill.api.app import create_app

__all__ = ["create_app"]
