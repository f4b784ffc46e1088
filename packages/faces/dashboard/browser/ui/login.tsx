import { useState } from "preact/hooks";
import { logIn } from "../data/api.ts";
import { Problem } from "./pieces.tsx";

export function Login({ problem }: { readonly problem: unknown }) {
  const [error, setError] = useState<unknown>();
  const [busy, setBusy] = useState(false);
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    setBusy(true);
    const token = String(new FormData(event.currentTarget as HTMLFormElement).get("token") ?? "").trim();
    await logIn(token).catch((reason: unknown) => {
      setError(reason);
      setBusy(false);
    });
  };
  return (
    <main class="login">
      <h1>Nodeyard</h1>
      <form onSubmit={submit}>
        <label>
          Token
          <input name="token" type="password" autocomplete="off" required spellcheck={false} />
        </label>
        <Problem error={error ?? problem} />
        <button type="submit" class="primary" disabled={busy}>
          Log in
        </button>
      </form>
      <p class="dim">
        An operator makes a token: <code>nodeyard token create NAME --role viewer</code>
      </p>
    </main>
  );
}
