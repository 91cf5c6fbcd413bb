-- Returns a footprint that PostGIS can compare. One item with overlapping parts would make every spatial search fail.
CREATE OR REPLACE FUNCTION catalogue.sound_place(_geometry public.geometry) RETURNS public.geometry
    LANGUAGE plpgsql IMMUTABLE
    SET search_path = public
AS $$
BEGIN
    RETURN CASE WHEN st_isvalid(_geometry) THEN _geometry ELSE st_makevalid(_geometry, 'method=structure') END;
END
$$;
