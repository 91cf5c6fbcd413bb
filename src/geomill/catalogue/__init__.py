"""Results made visible: many catalogue entries at once, and what is outside, in the external zone's own database.

An asset's own entry needs nobody: it follows the asset inside the database (`sql/functions/follow_asset.sql`).
"""
