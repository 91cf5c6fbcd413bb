"""Downloads of features and pixels as files, each made by a child process with limits."""
