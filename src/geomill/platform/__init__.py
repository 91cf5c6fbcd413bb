"""Submissions of partners and decisions of reviewers. This package writes business state and leaves the work to
jobs."""
