"""The rules of the domain, without input or output: workflows (`engine`), assets (`assets`) and visibility (`access`).

The modules of this folder itself serve all three.
"""
