import {
  amountText,
  BAR_RESOURCES,
  type Having,
  LAYERS,
  layersOf,
  resourceText,
  wholeOf,
} from "@nodeyard/client/amounts";

/** What the parts of bars mean. Each differs in shape or pattern, not in colour alone. */
export function Legend() {
  return (
    <ul class="legend having" aria-label="Legend">
      {Object.entries(LAYERS).map(([kind, [, words]]) => (
        <li key={kind}>
          <span class="track" aria-hidden="true">
            <span class={kind} />
          </span>{" "}
          {words}
        </li>
      ))}
    </ul>
  );
}

/** A bar for each resource with the same in words. Bars of all in `among` end at the same amount. */
export function HavingBars({ of, among }: { readonly of: Having; readonly among: readonly Having[] }) {
  return (
    <ul class="having">
      {BAR_RESOURCES.map((resource) => {
        const text = (amounts: Having["uses"], words: string) =>
          amounts[resource] === undefined ? [] : [`${amountText(resource, amounts[resource])} ${words}`];
        const isGuaranteed = (of.guarantees[resource] ?? 0) > 0;
        const loan = of.borrowed[resource] ?? 0;
        return (
          <li key={resource}>
            <span class="dim">{resourceText(resource)}</span>
            <span class="track" aria-hidden="true">
              {layersOf(of, resource, wholeOf(among, resource)).map(({ kind, from, to }) => (
                <span
                  key={kind}
                  class={kind}
                  style={{ left: `${from * 100}%`, width: `${(to - from) * 100}%` }}
                />
              ))}
            </span>
            <span>
              {[
                ...text(of.uses, LAYERS.used[1]),
                ...(isGuaranteed ? text(of.guarantees, LAYERS.guaranteed[1]) : []),
                ...text(of.caps, "at most"),
                ...(loan === 0
                  ? []
                  : [`${amountText(resource, Math.abs(loan))} ${LAYERS[loan > 0 ? "borrowed" : "lent"][1]}`]),
              ].join(", ") || "no limit"}
            </span>
          </li>
        );
      })}
    </ul>
  );
}
