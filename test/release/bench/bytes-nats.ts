// Reads how many bytes the streams of a nats-server occupy. A bucket is a stream, too.

export type StreamSize = { readonly messages: number; readonly bytes: number };

type Streams = {
  readonly account_details?: readonly {
    readonly stream_detail?: readonly { readonly name: string; readonly state: StreamSize }[];
  }[];
};

/** Reads `/jsz` of the server's monitoring port, which is what `nats stream info` shows. */
export async function readStreams(monitorPort: number): Promise<ReadonlyMap<string, StreamSize>> {
  const answer = await fetch(`http://127.0.0.1:${monitorPort}/jsz?accounts=true&streams=true`);
  const { account_details: accounts = [] } = (await answer.json()) as Streams;
  return new Map(
    accounts.flatMap(({ stream_detail: streams = [] }) =>
      streams.map(({ name, state }) => [name, state] as const),
    ),
  );
}
