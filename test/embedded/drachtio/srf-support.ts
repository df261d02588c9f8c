// Connects drachtio-srf to an engine.

import { once } from 'node:events';
import Srf from 'drachtio-srf';

export async function connectSrf(
  engine: { readonly controlHost: string; readonly controlPort: number },
  secret = 'cymru',
): Promise<Srf> {
  const srf = new Srf();
  srf.on('error', () => undefined);
  const connected = once(srf, 'connect');
  void srf.connect({ host: engine.controlHost, port: engine.controlPort, secret });
  const [error] = (await connected) as [Error | null];
  if (error !== null && error !== undefined) throw error;
  return srf;
}
