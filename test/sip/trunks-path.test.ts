import { expect, test } from 'vitest';
import { trunksPath } from '../../src/sip/trunks/trunks-path.ts';

test('the file that TRUNKS_FILE names is read, whether it is there or not', () => {
  expect(trunksPath({ trunksFile: '/etc/trunks.yaml' })).toBe('/etc/trunks.yaml');
});

test('`none` means that there is none, whatever file lies beside the gateway', () => {
  expect(trunksPath({ trunksFile: 'none' })).toBeUndefined();
});
