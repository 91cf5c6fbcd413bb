import { Screen } from "@/shell/Screen";

export default function Overview() {
  return <Screen title="Overview">…</Screen>;
}
