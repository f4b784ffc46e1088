import { type Fields, odd, seconds, text } from "./fields.ts";
import { type RecordKind, shapeOf } from "./record-kind.ts";

/** What builds and uploads have alike. Times are seconds since the epoch. */
export interface ImageFields<State extends string> {
  readonly state: State;
  readonly stateTime: number | null;
  /** How machines made of the image are logged in to. */
  readonly username: string | null;
  readonly pythonPath: string | null;
  readonly shellType: string | null;
}

/** The members that one kind has beside those of all, each as the record has it. */
export type OwnFields<T> = Omit<T, keyof ImageFields<string>>;

/** A kind of image record: the defaults of what is missing are old readers' (docs/contract/records.md, "Image build"). */
export function imageKind<State extends string, T extends ImageFields<State>>(
  name: string,
  states: readonly State[],
  own: Fields<OwnFields<T>>,
): RecordKind<T> {
  const known: ReadonlySet<unknown> = new Set(states);
  const fields = {
    state: {
      key: "state",
      missing: "failed",
      read: (value: unknown) => (known.has(value) ? value : odd),
    },
    stateTime: { key: "state_time", missing: null, read: seconds },
    ...own,
    username: { key: "username", missing: "zuul", read: text },
    pythonPath: { key: "python_path", missing: "/usr/bin/python2", read: text },
    shellType: { key: "shell_type", missing: null, read: text },
  } as unknown as Fields<T>;
  return { name, states, fields, shape: shapeOf(fields as Fields<object>), mandatory: new Map() };
}
