-- The condition on pgstac's items under which a caller sees an item. Whether an item is public stands in a column of its
-- own, because reading the content of each row takes longer than all else. Nobody sees an item that is withheld.
CREATE OR REPLACE FUNCTION catalogue.item_rule(_everything boolean, _platform text, _asset text) RETURNS text
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog
AS $$
DECLARE
    _rule text := 'true';
    _withheld text[];
BEGIN
    IF NOT _everything THEN
        _rule := format('(%s)', concat_ws(
            ' OR ',
            'private = ''{"public": true}''',
            'to_text(content -> ''properties'' -> ''geomill:platform'') = ' || quote_literal(_platform),
            'to_text(content -> ''properties'' -> ''geomill:asset_id'') = ' || quote_literal(_asset)
        ));
    END IF;
    IF to_regclass('catalogue.pending') IS NOT NULL THEN
        SELECT array_agg(p.asset_id) INTO _withheld FROM catalogue.pending AS p WHERE p.withheld;
    END IF;
    IF _withheld IS NOT NULL THEN
        _rule := format(
            '(%s AND coalesce(to_text(content -> ''properties'' -> ''geomill:asset_id''), '''') <> ALL (%L))',
            _rule, _withheld
        );
    END IF;
    RETURN _rule;
END
$$;
