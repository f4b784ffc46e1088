import { expect, it } from "vitest";
import { withProviders } from "../src/index.ts";

const text = `# The lab.
labels: &l [{name: a}]   # two spaces
providers:
  # Boards.
  - name: lab
    driver: static
    pools:
      - name: p
        nodes: []

  # The cloud: %(NODEPOOL_REGION)
  -
    # Region first.
    region-name: %(NODEPOOL_REGION)
    name: ec2
    driver: aws
  - {name: more, driver: static}
webapp: {port: 8005}
`;
const env = { NODEPOOL_REGION: "north" };
const only = (source: string, ...indexes: readonly number[]) =>
  withProviders({ text: source, env }, (index) => indexes.includes(index));

it("cuts whole providers with the comments above them, and leaves every other line as it is", () => {
  expect(only(text, 0, 1, 2)).toBe(text);
  expect(only(text, 0, 2)).toBe(text.replace(/ {2}# The cloud[\s\S]*driver: aws\n/, ""));
  expect(only(text, 1)).toBe(
    text.replace(/ {2}# Boards[\s\S]*nodes: \[\]\n\n/, "").replace("  - {name: more, driver: static}\n", ""),
  );
  // Dashes below the key itself, and a last line without its end.
  expect(only("providers:\n- name: a\n- name: b", 0)).toBe("providers:\n- name: a");
});

it("gives up where lines do not separate providers", () => {
  expect(only("providers: [{name: a}, {name: b}]", 0)).toBeUndefined();
  expect(only("providers:\n  - &a {name: a}\n  - {<<: *a, name: b}\n", 1)).toBeUndefined();
  expect(only("providers:\n  - {name: a}\n  - {name: b}\n")).toBeUndefined();
  expect(only("labels: []\n", 0)).toBeUndefined();
  expect(
    withProviders(
      { text: "x: %(NODEPOOL_X)\nproviders:\n  - {name: a}\n", env: { NODEPOOL_X: "1\ny: 2" } },
      () => true,
    ),
  ).toBeUndefined();
});
