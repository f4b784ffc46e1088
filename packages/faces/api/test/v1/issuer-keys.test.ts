import { VirtualClock } from "@nodeyard/runtime";
import { expect, test } from "vitest";
import { IssuerKeys } from "../../src/v1/issuer-keys.ts";

const URL = "https://issuer.example";

test.each([
  ["no document", null, /its answer: is null, but must be an object/],
  [
    "an issuer of a wrong kind",
    { issuer: 7, jwks_uri: `${URL}/keys` },
    /its answer\.issuer: is 7, but must be a string/,
  ],
])("the answer of an issuer is refused with its place: %s", async (_, answer, text) => {
  const keys = new IssuerKeys(URL, new VirtualClock(), async () => answer);
  const error = await Promise.resolve(keys.find({ alg: "ES256" }, {} as never)).catch(String);
  expect(error).toMatch(text);
  expect(error).not.toContain("\n");
});
