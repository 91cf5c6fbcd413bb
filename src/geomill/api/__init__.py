"""The HTTP API. `create_app` builds it from its arguments; importing it has no side effects.

app         assembles the application
gateway     the process-wide objects that routes use: connections, workflows, streams, figures
access      the table of who may call which route
guard       applies that table before the body of a request is read
credentials, authentication, tokens, rates
            turn headers into a principal and limit how often it may call
problems    turns every error into an RFC 9457 problem document
limits      the size of bodies and the origins that may call from a browser
models      the models of requests and responses
routes      one file for each noun
streams     live events of jobs
figures     the metrics that /metrics shows
"""

from geomill.api.app import create_app

__all__ = ["create_app"]
