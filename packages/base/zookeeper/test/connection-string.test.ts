import { describe, expect, test } from "vitest";
import { BadArguments, parseConnectionString } from "../src/index.ts";
import { addChroot, checkPath, stripChroot } from "../src/paths.ts";

describe("the connection string", () => {
  test.each([
    [
      "a:1,b:2/chroot",
      [
        { host: "a", port: 1 },
        { host: "b", port: 2 },
      ],
      "/chroot",
    ],
    ["zk.example.org", [{ host: "zk.example.org", port: 2181 }], ""],
    [
      "[::1]:2281,[fe80::1%eth0]/a/b/",
      [
        { host: "::1", port: 2281 },
        { host: "fe80::1%eth0", port: 2181 },
      ],
      "/a/b",
    ],
    [
      " a:1 , b:2 ",
      [
        { host: "a", port: 1 },
        { host: "b", port: 2 },
      ],
      "",
    ],
    ["a:1/", [{ host: "a", port: 1 }], ""],
  ])("%s", (text, hosts, chroot) => {
    expect(parseConnectionString(text)).toEqual({ hosts, chroot });
  });

  test.each(["", "/only", "a:0", "a:65536", "a:b", "::1:2181", "a:1/x,b:2/x", "a/../b", "a b:1"])(
    "%j is refused",
    (text) => {
      expect(() => parseConnectionString(text)).toThrow(BadArguments);
    },
  );
});

describe("paths", () => {
  test.each(["/", "/a", "/a/b", "/a.b/..c", "/ä/日本"])("%s is one", (path) => {
    expect(() => checkPath(path)).not.toThrow();
  });

  test.each(["", "a", "/a/", "//", "/a//b", "/.", "/a/../b", "/a/.", "/a\u0000", "/a\u0085", "/\u{1F600}"])(
    "%j is none",
    (path) => {
      expect(() => checkPath(path)).toThrow(BadArguments);
    },
  );

  test("may end with a slash when digits are going to follow", () => {
    expect(() => checkPath("/a/", true)).not.toThrow();
    expect(() => checkPath("/a//", true)).toThrow(BadArguments);
  });

  test.each(["/", "/a", "/a/b"])("%s comes back from below a chroot", (path) => {
    expect(stripChroot("/zuul", addChroot("/zuul", path))).toBe(path);
    expect(stripChroot("", addChroot("", path))).toBe(path);
  });
});
