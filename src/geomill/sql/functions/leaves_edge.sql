-- Whether an extent may be too large after items were replaced: the old items lie at its edge, and the new ones do not
-- cover them. The items of each side are given by their box and their times, which are null where there are no items.
CREATE OR REPLACE FUNCTION catalogue.leaves_edge(
    _extent jsonb, _old_box public.box2d, _old_begin timestamptz, _old_end timestamptz,
    _new_box public.box2d, _new_begin timestamptz, _new_end timestamptz
) RETURNS boolean
    LANGUAGE plpgsql IMMUTABLE
    SET search_path = public
AS $$
BEGIN
    IF _old_box IS NULL OR coalesce(
        st_xmin(_new_box) <= st_xmin(_old_box) AND st_ymin(_new_box) <= st_ymin(_old_box)
        AND st_xmax(_new_box) >= st_xmax(_old_box) AND st_ymax(_new_box) >= st_ymax(_old_box)
        AND _new_begin <= _old_begin AND _new_end >= _old_end, false)
    THEN
        RETURN false;
    END IF;
    RETURN catalogue.touches_extent(
        _extent, st_xmin(_old_box), st_ymin(_old_box), st_xmax(_old_box), st_ymax(_old_box), _old_begin, _old_end
    );
END
$$;
