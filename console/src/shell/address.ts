/** The state of a screen in its address: tab, filter, selection. A link to it shows the same. */

import { useCallback } from "react";
import { useLocation, useSearch } from "wouter";

/** A value of the address, and a function that changes it. The default is left out of the address. */
export function useAddress<Value extends string = string>(
  name: string,
  fallback: Value,
): [Value, (value: Value) => void] {
  const [values, change] = useAddresses();
  const value = (values.get(name) ?? fallback) as Value;
  return [
    value,
    useCallback((next: Value) => change({ [name]: next === fallback ? null : next }), [change, name, fallback]),
  ];
}

/** All values of the address, and a function that changes some; null takes one out. */
export function useAddresses(): [URLSearchParams, (changes: Record<string, string | string[] | null>) => void] {
  const search = useSearch();
  const [path, navigate] = useLocation();
  const change = useCallback(
    (changes: Record<string, string | string[] | null>) => {
      const values = new URLSearchParams(location.search);
      for (const [name, value] of Object.entries(changes)) {
        values.delete(name);
        for (const entry of value === null ? [] : [value].flat()) values.append(name, entry);
      }
      const query = values.toString();
      navigate(query ? `${path}?${query}` : path, { replace: true });
    },
    [navigate, path],
  );
  return [new URLSearchParams(search), change];
}
