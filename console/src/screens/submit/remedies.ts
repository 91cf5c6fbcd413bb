/** Remedies of problems, as buttons. */

import type { InspectionProblem } from "@/api/schema";
import type { Options } from "./draft";

export interface ReadyRemedy {
  label: string;
  options: Options;
}

const TIMES = ["datetime", "start_datetime", "end_datetime"];
const MOST_CHOICES = 6;

/** Remedies that one click can apply: options that all have a value, or the choices of a single one. */
export function readyRemedies(problem: InspectionProblem): ReadyRemedy[] {
  const remedies = problem.remedies ?? [];
  if (remedies.length === 0) return [];
  const choices = remedies.length === 1 ? (remedies[0]?.choices ?? []) : [];
  const ready: ReadyRemedy[] = [];
  if (remedies.every((remedy) => remedy.value !== null && remedy.value !== undefined)) {
    const options = Object.fromEntries(remedies.map((remedy) => [remedy.option, remedy.value]));
    ready.push({ label: labelOf(options), options });
  }
  for (const choice of choices.slice(0, MOST_CHOICES)) {
    const options = { [remedies[0]?.option ?? ""]: choice };
    if (!ready.some((remedy) => remedy.label === labelOf(options))) ready.push({ label: labelOf(options), options });
  }
  return ready;
}

function labelOf(options: Options): string {
  const words = Object.entries(options).map(([name, value]) => {
    if (value === true) return name;
    return name.endsWith("crs") ? String(value) : `${name} ${String(value)}`;
  });
  return `Use ${words.join(", ")}`;
}

/** Whether only another file helps. */
export function withoutRemedy(problem: InspectionProblem): boolean {
  return (problem.remedies ?? []).length === 0;
}

/** Whether the remedy is the date of the data, which has a field of its own. */
export function isTime(problem: InspectionProblem): boolean {
  const remedies = problem.remedies ?? [];
  return remedies.length > 0 && remedies.every((remedy) => TIMES.includes(remedy.option));
}

/** The message in sentences, with the name of the file as its owner knows it. */
export function cleaned(message: string, fileName: string): { happened: string; more: string } {
  const short = fileName.split("/").at(-1) ?? fileName;
  const own = message.replaceAll(/'(?:bronze\/)?[^']*\/([^'/]+)'/g, (whole, name: string) =>
    name === short ? "The file" : whole,
  );
  const plain = own.replaceAll(`'${short}'`, "The file");
  const cut = plain.search(/[:;] /);
  const happened = cut < 0 ? plain : plain.slice(0, cut);
  return { happened: sentence(happened), more: cut < 0 ? "" : sentence(plain.slice(cut + 2)) };
}

function sentence(text: string): string {
  const start = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(start) ? start : `${start}.`;
}
