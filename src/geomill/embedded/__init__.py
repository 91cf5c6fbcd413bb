"""A private PostgreSQL cluster in a data folder, for those who have no database server at hand.

    binaries    finds the server programs (15 or newer, with PostGIS) that the system carries
    account     who runs the server: the caller, or an unprivileged user when the caller is root
    place       which files lie where, also when root's own folder is closed to that user
    config      the server's settings and the making of `geomill.conf`
    postmaster  what `postmaster.pid` says, and whether it is still true
    creation    initdb beside the final place, then one rename
    cluster     start, stop, status, url

Only the standard library is used, so that the cluster can be started before anything else works.
"""

from geomill.embedded.binaries import Binaries, find
from geomill.embedded.cluster import Cluster, ClusterStatus, State, StopMode
from geomill.embedded.creation import DATABASE

__all__ = ["DATABASE", "Binaries", "Cluster", "ClusterStatus", "State", "StopMode", "find"]
