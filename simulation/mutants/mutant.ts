import { readFileSync } from "node:fs";
import { applied, type Edit, NoSuchPlace } from "./change.ts";
import { fileAt, NoSuchFile, onDisk, testsAt } from "./files.ts";

/**
 * A small fault of the product, to show that seeds or tests catch it. The product has no switches: its source is changed while it is
 * loaded.
 */
export interface Mutant {
  /** In kebab-case; describes the fault. */
  readonly name: string;
  /** What it breaks, in the words of docs/contract/rules.md, "What mutants break". */
  readonly breaks: string;
  /** The end of its file's path, such as `scheduler/plan`. */
  readonly at: string;
  /** What becomes of the file's source. Throws NoSuchPlace. */
  readonly edit: (source: string) => Edit;
  /** Tests that may catch it if seeds do not, by the ends of their paths; folders end in a slash. Without any, seeds must. */
  readonly tests: readonly string[];
  /** Why nothing catches it, if that is known. */
  readonly survives?: string | undefined;
}

/** The source that a mutant changes is no longer what the list says. */
export class StaleMutant extends Error {
  readonly code = "mutants.stale";

  constructor({ name, at }: Mutant, cause: Error) {
    const where = `mutant ${name}: ${cause.message} (in ${at})`;
    super(
      `${where}. Adapt it in simulation/mutants/list to the present source, or remove it with its fence`,
      { cause },
    );
    this.name = "StaleMutant";
  }
}

/** The path of a mutant's file, below the root. Throws StaleMutant. */
export function fileOf(mutant: Mutant): string {
  return orStale(mutant, () => fileAt(`${mutant.at}.ts`));
}

/** The paths of its tests, below the root and without `.test.ts`, or of folders of tests. */
export function testsOf({ tests }: Mutant): readonly string[] {
  return tests.map((test) =>
    test.endsWith("/") ? testsAt(test) : fileAt(`${test}.test.ts`).slice(0, -".test.ts".length),
  );
}

/** The source of the mutant's file with its fault. Throws StaleMutant unless the change fits exactly one place. */
export function mutated(mutant: Mutant, source = readFileSync(onDisk(fileOf(mutant)), "utf8")): string {
  return orStale(mutant, () => applied(mutant.edit(source), source));
}

function orStale<T>(mutant: Mutant, look: () => T): T {
  try {
    return look();
  } catch (error) {
    if (error instanceof NoSuchPlace || error instanceof NoSuchFile) throw new StaleMutant(mutant, error);
    throw error;
  }
}
