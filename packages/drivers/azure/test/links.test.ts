import { seededRandom, VirtualClock } from "@nodeyard/runtime";
import { expect, test } from "vitest";
import { Arm } from "../src/arm.ts";
import { identityOf } from "../src/identity.ts";
import { AUTH } from "./rig.ts";

const { signal } = new AbortController();

test.each([
  ["https://management.azure.com/further", 2],
  ["https://westeurope.management.azure.com/further", 2],
  ["https://evil-management.azure.com/further", 1],
  ["http://management.azure.com/further", 1],
  ["https://management.azure.com.example.org/further", 1],
])("the token goes only where Azure is: a page that goes on at %s", async (nextLink, calls) => {
  const sent: string[] = [];
  const auth = { ...AUTH, resourceManagerEndpointUrl: "https://management.azure.com/" };
  const around = { env: {}, read: () => JSON.stringify(auth) };
  const arm = new Arm({
    ...{ clock: new VirtualClock(), random: seededRandom(1), authPath: "/auth.json" },
    ...{ around, identity: identityOf("/auth.json", around) },
    async send({ url }) {
      const isLogin = url.endsWith("/token");
      if (!isLogin) sent.push(url);
      const value = isLogin
        ? { access_token: "token", expires_in: 3600 }
        : { value: [], ...(sent.length === 1 && { nextLink }) };
      return { status: 200, headers: {}, text: JSON.stringify(value) };
    },
    close: async () => {},
  });
  const listed = arm.list("/resourceGroups/g/providers/Microsoft.Compute/disks", signal);
  if (calls === 2) await expect(listed).resolves.toEqual([]);
  else await expect(listed).rejects.toThrow("and not to Azure");
  expect(sent).toHaveLength(calls);
});
