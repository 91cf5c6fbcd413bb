# Written by script/client from client/asynchronous. Change that, not this.
"""The synchronous client, written from the asynchronous one."""
