import { useState } from "react";
import { Dialog } from "./Dialog";
import { signs, singleKeysOn, switchSingleKeys, useAllKeys } from "./keys";

/** All keys that work on this screen. */
export function KeyHelp({ onClose }: { onClose: () => void }) {
  const bindings = useAllKeys();
  const [single, setSingle] = useState(singleKeysOn);
  return (
    <Dialog title="Keys" onClose={onClose}>
      <div className="key-list">
        {bindings.map((binding) => (
          <div key={binding.keys} className="fact">
            <span className="line">
              {signs(binding.keys).map((sign, place) => (
                <kbd key={place}>{sign}</kbd>
              ))}
            </span>
            <span>{binding.label}</span>
          </div>
        ))}
      </div>
      <label className="check">
        <input
          type="checkbox"
          checked={single}
          onChange={(event) => {
            switchSingleKeys(event.target.checked);
            setSingle(event.target.checked);
          }}
        />
        <span>Single keys work. Switch them off if you dictate, or if they get in your way.</span>
      </label>
    </Dialog>
  );
}
