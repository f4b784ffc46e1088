/** One line of the bench's output. Fields are numbers except names. */
export type Figure = Readonly<Record<string, string | number>> & { readonly scenario: string };

export interface Scenario {
  readonly name: string;
  /** A description in one line. */
  readonly about: string;
  /** Runs it on servers and launchers of its own. */
  run(options: {
    readonly rounds: number;
    readonly minutes: number;
    /** Nodes in the largest tree, and launchers at it. */
    readonly nodes: number;
    readonly launchers: number;
  }): AsyncIterable<Figure> | Iterable<Figure>;
}
