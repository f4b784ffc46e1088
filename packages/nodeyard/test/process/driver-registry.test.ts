import { expect, test } from "vitest";
import { Drivers, loadModule, ProcessError } from "../../src/process/index.ts";

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
  expect(drivers.get("openstack")).toBe("known-but-not-built");
  expect(drivers.get("opnstack")).toBeUndefined();
  expect(() => drivers.driver("openstack")).toThrow(
    'driver "openstack" is not installed: there is no package @nodeyard/driver-openstack',
  );
});

test("a name cannot reach beyond our packages", () => {
  const drivers = new Drivers((specifier) => {
    throw new Error(`loaded ${specifier}`);
  });
  for (const name of ["../../evil", "fake/../../evil", "", "A", "constructor/x"])
    expect(drivers.get(name)).toBeUndefined();
});

test("a package that breaks says so, and is not taken for a missing one", () => {
  const broken = new Drivers(() => {
    throw Object.assign(new Error("Cannot find module 'some-sdk'"), { code: "MODULE_NOT_FOUND" });
  });
  expect(() => broken.get("fake")).toThrow(ProcessError);
  expect(() => broken.get("fake")).toThrow("cannot be loaded: Cannot find module 'some-sdk'");
  const other = new Drivers(() => ({ driver: { name: "other", open() {} } }));
  expect(() => other.get("fake")).toThrow("exports no driver named fake");
});
