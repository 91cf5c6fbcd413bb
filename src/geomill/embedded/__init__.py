"""A private PostgreSQL cluster in a data folder, for users without a database server.

    binaries    finds the system's server programs (15 or newer, with PostGIS)
    account     the user who runs the server: the caller, or an unprivileged user if the caller is root
    place       the paths of all files, also if root's own folder is closed to that user
    config      the server's settings and the file `geomill.conf`
    postmaster  reads `postmaster.pid` and checks that its process is the server
    creation    runs initdb beside the final place, then renames the result
    cluster     start, stop, status, url

This package uses only the standard library, so the cluster can start before anything else works.
"""

from geomill.embedded.binaries import Binaries, find
from geomill.embedded.cluster import Cluster, ClusterStatus, State, StopMode
from geomill.embedded.creation import DATABASE

__all__ = ["DATABASE", "Binaries", "Cluster", "ClusterStatus", "State", "StopMode", "find"]
