import { expect, test } from "vitest";
import { Drivers, loadModule, ProcessError } from "../src/index.ts";

function missing(specifier: string): never {
  throw Object.assign(new Error(`Cannot find module '${specifier}'`), { code: "MODULE_NOT_FOUND" });
}

test("the drivers that are shipped are found by name, and loaded once", () => {
  const asked: string[] = [];
  const drivers = new Drivers((specifier) => {
    asked.push(specifier);
    return loadModule(specifier);
  });
  expect(asked).toEqual([]);
  expect(drivers.driver("static").capabilities.launches).toBe(false);
  expect(drivers.get("static")).toBe(drivers.driver("static").config);
  expect(drivers.driver("fake").capabilities.launches).toBe(true);
  expect(asked).toEqual(["@nodeyard/driver-static", "@nodeyard/driver-fake"]);
});

test("one of the old launcher is known; any other is not", () => {
  const drivers = new Drivers(missing);
  expect(drivers.get("example")).toMatchObject({ notes: expect.any(Function) });
  expect(drivers.get("example")).not.toHaveProperty("load");
  expect(drivers.get("exmaple")).toBeUndefined();
  expect(() => drivers.driver("example")).toThrow(
    'driver "example" is not installed: there is no package @nodeyard/driver-example or nodeyard-driver-example',
  );
});

test("a value that follows no rule never reaches the loader", () => {
  const drivers = new Drivers((specifier) => {
    throw new Error(`loaded ${specifier}`);
  });
  for (const value of ["", "A", "-x", "fake "]) expect(drivers.get(value)).toBeUndefined();
  for (const value of [
    "fake/../../evil",
    "constructor/x",
    "@acme/lab",
    "npm:../evil",
    "npm:",
    "node:fs",
    "npm:a/b",
  ])
    expect(drivers.get(value)).toEqual({
      trouble: `driver ${JSON.stringify(value)} is not installed: a driver is named by its name, by npm:PACKAGE, or by a path that starts with "./", "../" or "/"`,
    });
});

test("a package that breaks says so, and is not taken for a missing one", () => {
  const broken = new Drivers(() => {
    throw Object.assign(new Error("Cannot find module 'some-sdk'"), { code: "MODULE_NOT_FOUND" });
  });
  expect(() => broken.driver("fake")).toThrow(ProcessError);
  expect(broken.get("fake")).toEqual({
    trouble: "driver fake (@nodeyard/driver-fake) cannot be loaded: Cannot find module 'some-sdk'",
  });
  const other = new Drivers(() => ({ driver: { name: "other", open() {} } }));
  expect(() => other.driver("fake")).toThrow("exports no driver named fake");
});
