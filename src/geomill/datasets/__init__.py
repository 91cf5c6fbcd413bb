"""Parts that raster and vector work share: sources, outputs, refusals, scratch files and catalogue documents."""
