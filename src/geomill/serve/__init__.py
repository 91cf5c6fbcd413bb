"""What was published, for maps and programs: tiles (TiTiler), features (TiPG), and who may see them."""
