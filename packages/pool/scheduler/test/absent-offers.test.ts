import { expect, test } from "vitest";
import { AbsentOffers, OFFER_GRACE_MS } from "../src/absent-offers.ts";

const offer = (name: string) => {
  const labels = new Set([name]);
  return { key: `pool/${name}`, id: name, provider: name, labels, priority: 100, paused: false };
};
const awaited = (offers: AbsentOffers, label: string, steady: number) =>
  offers.awaited("request", [label], [], [], steady);

test("each pool that left is awaited for its own grace, whoever leaves after it", () => {
  const offers = new AbsentOffers();
  offers.left("pool/one", offer("one"), 0);
  offers.left("pool/two", offer("two"), 10);
  expect(awaited(offers, "one", OFFER_GRACE_MS - 1)).toEqual({ provider: "one", until: OFFER_GRACE_MS });
  expect(awaited(offers, "one", OFFER_GRACE_MS)).toBeUndefined();
  expect(awaited(offers, "two", OFFER_GRACE_MS)?.until).toBe(OFFER_GRACE_MS + 10);
});

test("a pool that is no longer being opened is not awaited", () => {
  const offers = new AbsentOffers();
  offers.opening([offer("one"), offer("two")], 0);
  offers.opening([offer("two")], 1);
  expect(awaited(offers, "one", 2)).toBeUndefined();
  expect(awaited(offers, "two", 2)?.until).toBe(OFFER_GRACE_MS);
});
