-- repair footprints of catalogue items that were written before they were checked
-- run: batches
-- database: both
UPDATE pgstac.items AS i
SET geometry = catalogue.sound_place(i.geometry)
FROM (
    SELECT collection, id FROM pgstac.items
    WHERE NOT public.st_isvalid(geometry) OR public.st_xmax(geometry) > 180 OR public.st_xmin(geometry) < -180
    LIMIT 500
) AS broken
WHERE i.collection = broken.collection AND i.id = broken.id;
