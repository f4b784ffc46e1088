import type { Reply } from "@nodeyard/client";
import { useState } from "preact/hooks";
import { call } from "../data/api.ts";
import { Lines } from "./past.tsx";
import { Problem } from "./pieces.tsx";

/** The end of a node's console. The cloud is asked when the part is opened, and again by its button. */
export function NodeConsole({ id }: { readonly id: string }) {
  const [end, setEnd] = useState<Reply<"get_node_console">>();
  const [error, setError] = useState<unknown>();
  const [asking, setAsking] = useState(false);
  const look = async () => {
    setAsking(true);
    setError(undefined);
    await call<Reply<"get_node_console">>("GET", `/v1/nodes/${id}/console`).then(setEnd, setError);
    setAsking(false);
  };
  return (
    <details onToggle={({ currentTarget: { open } }) => open && end === undefined && void look()}>
      <summary>Console: the last lines</summary>
      <Problem error={error} />
      {end?.problem != null && <p class="dim">{end.problem}</p>}
      {end?.cut === true && <p class="dim">The last lines:</p>}
      {end !== undefined && end.problem === null && <Lines of={`Console of node ${id}`} lines={end.lines} />}
      <button type="button" disabled={asking} onClick={() => void look()}>
        {asking ? "Asking the provider…" : "Look again"}
      </button>
    </details>
  );
}
