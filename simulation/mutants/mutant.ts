/**
 * A small fault of the product, to show that seeds or tests catch it. The product has no switches: its source is changed while it is
 * loaded.
 */
export interface Mutant {
  /** In kebab-case; describes the fault. */
  readonly name: string;
  /** What it breaks, in the words of docs/contract/rules.md, "What mutants break". */
  readonly breaks: string;
  /** Path below the root of the repository. */
  readonly file: string;
  /** Occurs exactly once in the file. */
  readonly find: string;
  readonly put: string;
  /** Test files that may catch it if seeds do not: paths below the root, without `.test.ts`. Without any, seeds must. */
  readonly tests?: readonly string[];
  /** Why nothing catches it, if that is known. */
  readonly survives?: string;
}

/** Faults of one file. */
export function faultsIn(file: string, faults: readonly Omit<Mutant, "file">[]): readonly Mutant[] {
  return faults.map((fault) => ({ file, ...fault }));
}

/** The source that a mutant changes is no longer what the list says. */
export class StaleMutant extends Error {
  readonly code = "mutants.stale";

  constructor({ name, file, find }: Mutant, times: number) {
    const where = `mutant ${name}: ${JSON.stringify(find)} occurs ${times} times in ${file}, not once`;
    super(`${where}. Adapt it in simulation/mutants/list to the present source, or remove it with its fence`);
    this.name = "StaleMutant";
  }
}

/** The source of the mutant's file with its fault. Throws StaleMutant unless the text is found exactly once. */
export function mutated(mutant: Mutant, source: string): string {
  const parts = source.split(mutant.find);
  if (parts.length !== 2) throw new StaleMutant(mutant, parts.length - 1);
  return parts.join(mutant.put);
}
