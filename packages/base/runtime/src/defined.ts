/** The members whose values are not undefined: what a type calls optional has the member or lacks it (`exactOptionalPropertyTypes`). */
type Defined<T> = {
  [K in keyof T as undefined extends T[K] ? never : K]: T[K];
} & {
  [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>;
};

/** The object without the members that are undefined. For members whose value costs nothing to name; it makes a new object. */
export function defined<T extends object>(members: T): Defined<T> {
  const kept: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(members)) if (value !== undefined) kept[name] = value;
  return kept as Defined<T>;
}

/** The object without the members that are null or undefined: what an API calls optional, of settings that are null unless they are set. */
export function present<T extends object>(members: T): { [K in keyof T]?: NonNullable<T[K]> } {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value != null)) as {
    [K in keyof T]?: NonNullable<T[K]>;
  };
}
