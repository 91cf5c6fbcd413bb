-- The footprint, repaired if it is not valid, and with the parts beyond 180° moved to their place. One invalid footprint
-- would make every search by place fail, and no search finds a place beyond 180°. A footprint without an area becomes its
-- envelope, which is a line or a point.
CREATE OR REPLACE FUNCTION catalogue.sound_place(_geometry public.geometry) RETURNS public.geometry
    LANGUAGE plpgsql IMMUTABLE
    SET search_path = public
AS $$
DECLARE
    _sound geometry := CASE WHEN st_isvalid(_geometry) THEN _geometry ELSE st_makevalid(_geometry, 'method=structure') END;
BEGIN
    IF st_isempty(_sound) THEN
        _sound := st_envelope(_geometry);
    END IF;
    IF st_xmax(_sound) > 180 THEN
        _sound := st_wrapx(_sound, 180, -360);
    END IF;
    IF st_xmin(_sound) < -180 THEN
        _sound := st_wrapx(_sound, -180, 360);
    END IF;
    RETURN CASE WHEN st_isvalid(_sound) THEN _sound ELSE st_unaryunion(_sound) END;
END
$$;
