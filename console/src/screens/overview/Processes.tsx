import { Card, Count } from "@/components/Card";
import { Loaded } from "@/components/Loading";
import { InstanceTable } from "../operations/InstanceTable";
import { useInstances } from "../operations/queries";

export function Processes() {
  const instances = useInstances();
  return (
    <Card className="c12" title="Processes" count={<Count value={instances.data?.instances.length ?? 0} />} flush>
      <Loaded query={instances} lines={3}>
        {(list) => <InstanceTable instances={list.instances} />}
      </Loaded>
    </Card>
  );
}
