import type { Reads } from "./reads.ts";
import type { ReportedState } from "./reported-state.ts";
import type { Source, TreeCacheOptions } from "./types.ts";

/**
 * Compares the subtree with what was reported. For a known path the walk reads the stat, and the data only when the stat changed; a new
 * path is read at once. It lists children only where a stat shows some, or where no stat was read.
 *
 * The follower starts it when the watch stands and events may have been missed before. Its end is known by `Reads`, which counts the
 * reads of a walk; what no read found is then reported as removed. Paths that do not exist are no error.
 */
export class Walk {
  /** Callers that wait for the end of this walk. */
  waiters: PromiseWithResolvers<void>[] = [];
  readonly #source: Source;
  readonly #reported: ReportedState;
  readonly #reads: Reads;
  readonly #options: Pick<TreeCacheOptions, "descend" | "only">;
  /** Called for each read that failed. The walk is of no use then, unless the error is that the path is forbidden. */
  readonly #onError: (error: Error) => void;

  constructor(
    source: Source,
    reported: ReportedState,
    reads: Reads,
    options: Pick<TreeCacheOptions, "descend" | "only">,
    onError: (error: Error) => void,
  ) {
    this.#source = source;
    this.#reported = reported;
    this.#reads = reads;
    this.#options = options;
    this.#onError = onError;
  }

  /** Starts the comparison. The walk before must have ended or been abandoned. */
  begin(root: string): void {
    this.#reported.beginWalk();
    const interest = this.#reported.interest(root);
    if (interest === "data") this.#compare(root);
    else if (interest === "name" || this.#options.only?.(root) === undefined) this.#list(root, true);
    else {
      // As a read of the walk, so that it ends also if none of these names needs one.
      this.#reads.walk((done) => {
        this.#below(root);
        done();
      });
    }
    this.#reads.pump();
  }

  /** Does for a path what its interest needs. Where only names beneath matter, the path itself costs no read. */
  #visit(path: string): void {
    switch (this.#reported.interest(path)) {
      case "data":
        this.#compare(path);
        return;
      case "name":
        this.#reported.name(path);
        this.#below(path);
        return;
      case "none":
        this.#below(path);
    }
  }

  /** Each step is a read of the walk, which waits for a free place among the reads. */
  #compare(path: string): void {
    this.#reads.walk((done) => {
      if (this.#reported.has(path)) this.#stat(path, done);
      else this.#get(path, done, true);
    });
  }

  /** Of a path that was reported: most of them have not changed, and a stat is small. */
  #stat(path: string, done: () => void): void {
    this.#source.stat(path, (error, stat) => {
      if (this.#broken(error)) return done();
      if (stat !== undefined) {
        // Before `done`: the walk ends when none of its reads is left.
        if (stat.numChildren > 0) this.#below(path);
        if (!this.#reported.isCurrent(path, stat)) this.#reads.walk((end) => this.#get(path, end, false));
      }
      done();
    });
  }

  /** With `descend` the children are visited too; a path whose stat was read has had this done. */
  #get(path: string, done: () => void, descend: boolean): void {
    this.#source.get(path, (error, found) => {
      if (this.#broken(error)) return done();
      if (found !== undefined) {
        this.#reported.put(path, found.data, found.stat);
        if (descend && found.stat.numChildren > 0) this.#below(path);
      }
      done();
    });
  }

  /** Visits the children that the options do not exclude: those that `only` names, without a list, or all. */
  #below(path: string): void {
    if (this.#options.descend?.(path) === false) return;
    const only = this.#options.only?.(path);
    if (only === undefined) this.#list(path, false);
    else for (const name of only) this.#visit(path === "/" ? `/${name}` : `${path}/${name}`);
  }

  /** Visits all children. The root may be missing, so its name is reported only when its children could be read. */
  #list(path: string, isRoot: boolean): void {
    this.#reads.walk((done) => {
      this.#source.children(path, (error, names) => {
        if (this.#broken(error)) return done();
        if (names !== undefined) {
          if (isRoot && this.#reported.interest(path) === "name") this.#reported.name(path);
          const prefix = path === "/" ? "/" : `${path}/`;
          for (const name of names) this.#visit(prefix + name);
        }
        done();
      });
    });
  }

  /** Whether the read failed, which is reported. */
  #broken(error: Error | undefined): boolean {
    if (error !== undefined) this.#onError(error);
    return error !== undefined;
  }
}
