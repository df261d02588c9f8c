<?php
// A receiver of notifications in plain PHP.
// WEBHOOK_SECRET=whsec_… php -S 127.0.0.1:4000 receiver.php

declare(strict_types=1);

const TOLERANCE_S = 300;

/**
 * Whether the timestamp is recent and one of the signatures matches the raw body. There are two
 * signatures while the secret is being rotated.
 */
function isSigned(string $rawBody, string $header, string $secret): bool
{
    $t = '';
    $signatures = [];
    foreach (explode(',', $header) as $part) {
        [$name, $value] = explode('=', trim($part), 2) + ['', ''];
        if ($name === 't') {
            $t = $value;
        } elseif ($name === 'v1') {
            $signatures[] = $value;
        }
    }
    if (!preg_match('/^[0-9]{1,12}$/D', $t) || abs(time() - (int) $t) > TOLERANCE_S) {
        return false;
    }
    $expected = hash_hmac('sha256', "$t.$rawBody", $secret);
    foreach ($signatures as $signature) {
        if (hash_equals($expected, $signature)) {
            return true;
        }
    }
    return false;
}

/**
 * Ignores repetitions, and keeps late notifications from overwriting newer ones. Each call has a
 * file, because PHP requests share no memory. In production, use a table, and keep a call's row
 * until no replay of its notifications can arrive.
 */
function take(array $notification, string $folder): string
{
    // Hash the call id: text from outside must not become a file name.
    $file = fopen($folder . '/' . hash('sha256', $notification['callId']), 'c+');
    flock($file, LOCK_EX);
    $call = json_decode(stream_get_contents($file), true) ?? ['sequence' => 0, 'seen' => []];
    if (in_array($notification['eventId'], $call['seen'], true)) {
        return 'duplicate';
    }
    $call['seen'][] = $notification['eventId'];
    $isLate = $notification['sequence'] < $call['sequence'];
    if (!$isLate) {
        $call['sequence'] = $notification['sequence'];
        // An event that `notifyEvents` selected is not a status of the call.
        if ($notification['status'] !== 'Event') {
            $call['status'] = $notification['status'];
        }
    }
    rewind($file);
    ftruncate($file, 0);
    fwrite($file, json_encode($call));
    // Closing the file releases the lock.
    fclose($file);
    return $isLate ? 'late' : 'applied';
}

$folder = getenv('CALLS_FOLDER') ?: sys_get_temp_dir() . '/offhook-calls';
is_dir($folder) || mkdir($folder, 0700, true);

// The body as it arrived, before any parsing.
$rawBody = file_get_contents('php://input');
if (!isSigned($rawBody, $_SERVER['HTTP_GATEWAY_SIGNATURE'] ?? '', (string) getenv('WEBHOOK_SECRET'))) {
    http_response_code(401);
    exit;
}
// Respond first and do the work afterwards, because the gateway waits at most 10 s.
header('Content-Type: text/plain');
echo take(json_decode($rawBody, true, flags: JSON_THROW_ON_ERROR), $folder);
