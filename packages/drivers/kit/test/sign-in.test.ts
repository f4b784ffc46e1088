import { expect, test } from "vitest";
import { CloudConfigError, grantedToken, NoAnswer, tokenForm } from "../src/index.ts";

const NOW = 1_000_000;
const granted = (status: number, body: object) =>
  grantedToken(
    async () => ({ status, headers: {}, text: JSON.stringify(body) }),
    tokenForm("https://login.example/token", { grant_type: "a", scope: null }),
    () => ({ codes: [], text: "said no" }),
    NOW,
  );

test("a token ends after the seconds, or at the second, that the login says", async () => {
  expect(await granted(200, { access_token: "a", expires_in: 60 })).toEqual({ text: "a", end: NOW + 60_000 });
  expect(await granted(200, { access_token: "a", expires_on: "2000" })).toEqual({
    text: "a",
    end: 2_000_000,
  });
});

test.each([{}, { expires_in: "soon" }, { expires_in: 0 }, { expires_on: 1_000 }])(
  "one that ends with %j is none: each call would sign in anew",
  async (ends) => {
    await expect(granted(200, { access_token: "a", ...ends })).rejects.toThrow(NoAnswer);
  },
);

test("a login that refuses is a fault of the credentials, and any other answer passes", async () => {
  await expect(granted(401, {})).rejects.toThrow(CloudConfigError);
  await expect(granted(401, {})).rejects.toThrow("said no; check the credentials");
  await expect(granted(503, {})).rejects.toThrow(NoAnswer);
});
