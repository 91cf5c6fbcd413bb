-- The columns of pgstac's items for the document of an item. `private` says whether the item is public, so that searches
-- need not read its content. Nothing is left out of the content, because our collections have no item_assets from which
-- pgstac could put it back.
CREATE OR REPLACE FUNCTION catalogue.item_row(_item jsonb)
    RETURNS TABLE (
        id text, geometry public.geometry, datetime timestamptz, end_datetime timestamptz, content jsonb, private jsonb
    )
    LANGUAGE sql STABLE
AS $$
    SELECT _item ->> 'id',
           catalogue.sound_place(public.st_geomfromgeojson(_item -> 'geometry')),
           coalesce(_item #>> '{properties,start_datetime}', _item #>> '{properties,datetime}')::timestamptz,
           coalesce(_item #>> '{properties,end_datetime}', _item #>> '{properties,datetime}')::timestamptz,
           _item - '{id,geometry,collection,type}'::text[],
           jsonb_build_object('public', coalesce((_item #> '{properties,geomill:public}')::boolean, false))
$$;
