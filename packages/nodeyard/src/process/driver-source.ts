/** Where a driver comes from, by the value of `driver:` (docs/design/drivers.md). */
export type DriverSource =
  /** Modules to try, in this order; the driver in them has to have this name. */
  | { readonly name: string; readonly specifiers: readonly string[] }
  /** One module with one driver, whatever that is called. */
  | { readonly name: null; readonly specifiers: readonly [string] };

const NAME = /^[a-z][a-z0-9-]*$/;
const PACKAGE = /^npm:((?:@[a-z0-9][a-z0-9._~-]*\/)?[a-z0-9][a-z0-9._~-]*)$/;
const PATH = /^\.{0,2}\//;

/** Undefined: the value can name no driver. */
export function driverSource(value: string): DriverSource | undefined {
  if (NAME.test(value))
    return { name: value, specifiers: [`@nodeyard/driver-${value}`, `nodeyard-driver-${value}`] };
  const [, packageName] = PACKAGE.exec(value) ?? [];
  if (packageName !== undefined) return { name: null, specifiers: [packageName] };
  return PATH.test(value) ? { name: null, specifiers: [value] } : undefined;
}

/** How a value that can name no driver is mended. */
export const SPELLING =
  'a driver is named by its name, by npm:PACKAGE, or by a path that starts with "./", "../" or "/"';
