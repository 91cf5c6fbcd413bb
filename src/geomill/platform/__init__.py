"""The front desk: what partners ask for and reviewers decide. It writes business state and leaves the work to jobs."""
