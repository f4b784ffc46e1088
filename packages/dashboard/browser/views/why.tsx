import { useEffect } from "preact/hooks";
import { address, go, hrefOf } from "../data/route.ts";
import { nodesByLabel, rows, tables, versions } from "../data/state.ts";

/** The view for a text from a log, job or chat; undefined when the text has no known form. */
function targetOf(text: string): string | undefined {
  if (/^\d{3}-\d{10}$/.test(text)) return hrefOf("requests", text);
  if (/^\d{1,10}$/.test(text)) return hrefOf("nodes", text.padStart(10, "0"));
  if (/^[0-9a-f]{12}$/.test(text)) return hrefOf("leases", text);
  if (tables.image.get(text) !== undefined && !isLabel(text)) return hrefOf("images", text);
  if (isLabel(text)) return hrefOf("labels", text);
  for (const node of tables.node.values()) {
    const { id, hostname, interface_ip, public_ipv4, private_ipv4, ipv6 } = node;
    if ([hostname, interface_ip, public_ipv4, private_ipv4, ipv6].includes(text)) return hrefOf("nodes", id);
  }
  return undefined;
}

function isLabel(text: string): boolean {
  return nodesByLabel.groups.has(text) || rows("pool").some(({ labels }) => labels.includes(text));
}

export function WhyView() {
  const text = address.value.query.get("q")?.trim() ?? "";
  // Read so that the view is drawn again when the stream has brought the rows.
  void versions.node.value;
  void versions.pool.value;
  const target = text === "" ? undefined : targetOf(text);
  useEffect(() => {
    if (target !== undefined) location.replace(target);
  }, [target]);
  return (
    <>
      <header>
        <h1>Why is this slow?</h1>
      </header>
      {text !== "" && target === undefined && (
        <p role="status">
          Nothing here is called <strong>{text}</strong>.{" "}
          <button type="button" class="small" onClick={() => go(hrefOf("labels", text))}>
            Ask the launchers for a label of this name
          </button>
        </p>
      )}
      <p class="dim">
        Paste the id of a request (<code>200-0000000042</code>), a node (<code>0000000042</code>) or a lease,
        the address of a node, or the name of a label or image into the field above: press <kbd>/</kbd> to get
        there.
      </p>
    </>
  );
}
