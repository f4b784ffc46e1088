import { describe, expect, test } from "vitest";
import { commandLine, shellText } from "../guest/machine.ts";
import { problemOf, readResults } from "../guest/results.ts";

const machine = {
  kernel: "/g/linux",
  root: "/g/root.raw",
  folder: "/w/run",
  cores: 2,
  mebibytes: 3072,
} as const;

describe("the guest's machine", () => {
  test("has no network, and writes to a file of its run only", () => {
    const words = commandLine(machine);
    expect(words).toContain("ubd0=/w/run/root.changes,/g/root.raw");
    expect(words.filter((word) => /^(?:eth|vec)\d/.test(word))).toEqual([]);
    expect(commandLine({ ...machine, job: "/w/job.raw" })).toContain("ubd1=/w/job.raw");
  });

  test("takes no path that its kernel would read as two options", () => {
    for (const folder of ["/a b", "/a,b", '/a"b'])
      expect(() => commandLine({ ...machine, folder })).toThrow(`${folder}: a path of a guest has no space`);
  });

  test("gets no text that its shell would interpret further", () => {
    expect(shellText({ SUITES: "lxc-io lxc-steps" })).toBe('export SUITES="lxc-io lxc-steps"\n');
    for (const value of ["$(id)", 'a"b', "a\nb", "`id`", "a;b", "a\\b"])
      expect(() => shellText({ A: value })).toThrow();
  });
});

describe("the guest's results", () => {
  const facts = { kernel: "6.1", controllers: "cpuset cpu io memory pids", version1: 0 };
  const report = {
    numTotalTests: 2,
    numPassedTests: 2,
    numFailedTests: 0,
    numPendingTests: 0,
    testResults: [],
  };
  const text = (exitCode: number, moreFacts: object = {}, moreReport: object = {}) =>
    [exitCode, JSON.stringify({ ...facts, ...moreFacts }), JSON.stringify({ ...report, ...moreReport })].join(
      "\n",
    );

  test("prove something only when everything ran on cgroup v2 and passed", () => {
    const problem = (...args: Parameters<typeof text>) => problemOf(readResults(text(...args)));
    expect(problem(0)).toBeUndefined();
    expect(problem(1, {}, { numFailedTests: 1 })).toBe("1 tests failed");
    expect(problem(1)).toBe("vitest ended with 1");
    expect(problem(0, {}, { numPendingTests: 3 })).toBe("3 tests were left out");
    expect(problem(0, {}, { numTotalTests: 0 })).toBe("no test ran");
    expect(problem(0, { version1: 2 })).toBe("the guest has hierarchies of cgroup v1");
    expect(problem(0, { controllers: "cpu memory" })).toBe("the guest has no controller cpuset, io, pids");
  });

  test("that are not all there are none", () => {
    expect(() => readResults("")).toThrow("ended before it handed over");
    const whole = text(0);
    for (const length of [1, 30, whole.length - 3])
      expect(() => readResults(whole.slice(0, length))).toThrow();
  });
});
