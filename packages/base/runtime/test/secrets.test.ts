import { expect, test } from "vitest";
import { keepSecret, messageOf, NodeyardError, withoutSecrets } from "../src/index.ts";

test("no message has what was kept, in any of its forms; other words stay", () => {
  keepSecret("s3cr3t/of=mine");
  keepSecret("#!/bin/sh\nexport TOKEN=in-the-user-data\n");
  keepSecret("short");
  const said = [
    "the key s3cr3t/of=mine is refused",
    `user data ${Buffer.from("#!/bin/sh\nexport TOKEN=in-the-user-data\n").toString("base64")} is refused`,
    "s3cr3t%2Fof%3Dmine",
    "#!/bin/sh export TOKEN=in-the-user-data",
    "line 2: export TOKEN=in-the-user-data",
    "in short",
  ];
  const clean = said.map(withoutSecrets);
  expect(clean).toEqual([
    "the key (secret) is refused",
    "user data (secret) is refused",
    "(secret)",
    "(secret)",
    "line 2: (secret)",
    "in short",
  ]);
  expect(said.map((text) => new NodeyardError("x", text).message)).toEqual(clean);
  expect(said.map((text) => messageOf(new Error(text)))).toEqual(clean);
});

test("of two that overlap nothing is left, and a session that is renewed for ever does not grow the set", () => {
  keepSecret("abcdefgh");
  keepSecret("abcdefghijkl");
  expect(withoutSecrets("abcdefghijkl")).toBe("(secret)");
  keepSecret("the password", "configured");
  for (let count = 0; count < 1_100; count++) keepSecret(`token number ${count}`);
  expect(withoutSecrets("token number 1099, abcdefghijkl, the password")).toBe(
    "(secret), abcdefghijkl, (secret)",
  );
});
