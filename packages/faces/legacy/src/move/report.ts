import type { ValidationResult } from "@nodeyard/config";
import { plain } from "@nodeyard/operations/listing";
import type { MoveSurvey } from "./survey.ts";

/**
 * The report for an operator who plans a move from Nodepool, in Markdown. `survey`: what the tree has, or why it was not read;
 * null: it was not to be. Always all sections of the file, so that a missing one is not taken for an oversight.
 */
export function migrationReport(
  file: string,
  { findings, providers, differences, lostLabels }: Omit<ValidationResult, "exitCode">,
  survey: MoveSurvey | string | null,
): string {
  const named = (isServed: boolean) =>
    providers.flatMap(({ name, driver, labels, ...of }) =>
      of.isServed === isServed
        ? [`${name} (${driver}), labels ${[...new Set(labels)].join(", ") || "none"}`]
        : [],
    );
  const errors = findings.flatMap(({ source, severity, line, path, message }) =>
    source === "load" || source === "machine" || severity === "error"
      ? [`line ${line}: ${path}: ${message}`]
      : [],
  );
  return [
    `# From Nodepool to Nodeyard: ${plain(file)}\n`,
    section("Providers that can move", named(true)),
    section("Providers that stay with Nodepool, since their driver is not installed", named(false)),
    section("Labels that only those offer", lostLabels),
    section("To change before a launcher of Nodeyard loads the file", errors),
    section("Keys in use that do something else", byMeaning(differences)),
    ...treeSections(survey),
    'How to move step by step: "nodeyard docs replace-a-python-launcher". What differs whatever the file says: "nodeyard docs differences".\n',
  ].join("\n");
}

/** What happens to each thing in the tree; large groups are one line with their number. */
function treeSections(survey: MoveSurvey | string | null): readonly string[] {
  if (survey === null) return [];
  if (typeof survey === "string") return [`## The tree\n\nNot looked at: ${plain(survey)}\n`];
  const titles: Readonly<Record<keyof MoveSurvey, string>> = {
    components: "In the tree now: processes and pools",
    requests: "In the tree now: requests",
    nodes: "In the tree now: nodes, and what a launcher with this file does with them",
    images: "In the tree now: images, and what a builder with this file does with them",
  };
  return Object.entries(titles).map(([of, title]) =>
    section(
      title,
      survey[of as keyof MoveSurvey].map(({ what, count, then }) =>
        [`${count} x ${what}`, then].filter((text) => text !== "").join(": "),
      ),
    ),
  );
}

/** "None." rather than nothing: the reader looks for what the section would say. */
function section(title: string, items: readonly string[]): string {
  return `## ${title}\n\n${items.length === 0 ? "None.\n" : items.map((item) => `- ${plain(item)}\n`).join("")}`;
}

/** One line per difference, with all places at which the file has the key. */
function byMeaning(differences: ValidationResult["differences"]): readonly string[] {
  const lines = new Map<string, number[]>();
  for (const { path, message, line } of differences) {
    const title = `\`${path.replace(/^.*[.\s]/, "")}\`: ${message}`;
    lines.set(title, [...(lines.get(title) ?? []), line]);
  }
  return [...lines].map(
    ([title, at]) => `${title} (${at.length === 1 ? "line" : "lines"} ${[...new Set(at)].join(", ")})`,
  );
}
