import type { Reply } from "@nodeyard/client";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { call } from "../data/api.ts";
import { Problem } from "./pieces.tsx";

/** Characters of a log that are kept. The builder's file has the rest. */
const KEPT = 200_000;
/** Seconds that the server waits for more lines before it answers. */
const WAIT_SECONDS = 20;
/** Milliseconds between two calls. The server answers at once for a log of another process. */
const PAUSE_MS = 1_500;

/** The end of a build's log. It is followed while the build runs and the log is open. */
export function BuildLog({ id }: { readonly id: string }) {
  const [open, setOpen] = useState(false);
  return (
    <details onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>Log</summary>
      {open && <Lines id={id} />}
    </details>
  );
}

function Lines({ id }: { readonly id: string }) {
  const [text, setText] = useState("");
  const [error, setError] = useState<unknown>();
  const place = useRef<HTMLPreElement>(null);
  const atEnd = useRef(true);
  useEffect(() => {
    const ended = new AbortController();
    follow(id, ended.signal, (more) => setText((known) => (known + more).slice(-KEPT))).catch(setError);
    return () => ended.abort();
  }, [id]);
  useLayoutEffect(() => {
    const element = place.current;
    if (element !== null && atEnd.current) element.scrollTop = element.scrollHeight;
  }, [text]);
  return (
    <>
      <Problem error={error} />
      <pre
        class="console"
        role="log"
        aria-label={`Log of build ${id}`}
        ref={place}
        onScroll={({ currentTarget: { scrollTop, scrollHeight, clientHeight } }) => {
          atEnd.current = scrollTop + clientHeight >= scrollHeight - 4;
        }}
      >
        {text}
      </pre>
    </>
  );
}

/** Resolves at the end of the log. Rejects with Refusal. */
async function follow(id: string, left: AbortSignal, tell: (text: string) => void): Promise<void> {
  const path = `/v1/builds/${encodeURIComponent(id)}/log`;
  for (let query = ""; ; ) {
    const part = await call<Reply<"get_build_log">>("GET", `${path}${query}`);
    if (left.aborted) return;
    tell(part.text);
    if (part.ended && part.next >= part.size) return;
    query = `?from=${part.next}&wait_seconds=${WAIT_SECONDS}`;
    if (part.next >= part.size) await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    if (left.aborted) return;
  }
}
