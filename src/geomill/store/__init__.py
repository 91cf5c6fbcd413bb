"""PostgreSQL: the schema made from the models, its migration, and the statements that read and write rows.

models ──describe──► Database ──ddl──► SQL ──► scratch schema ─┐
                                                              ├─ catalogue ──► two of them ──diff──► changes
                                            live schema ──────┘
"""
