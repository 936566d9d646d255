package main

import (
	"context"
	"sync"

	"github.com/goverbs/goverbs/rdmacm"
)

// Client talks to a server. It is safe for concurrent use: requests go one
// after the other.
type Client struct {
	mu sync.Mutex
	m  *messages
}

// Dial connects to the server at an address.
func Dial(ctx context.Context, address string) (*Client, error) {
	d := rdmacm.Dialer{Config: config()}
	conn, err := d.DialContext(ctx, address)
	if err != nil {
		return nil, err
	}
	return &Client{m: conn.UserData().(*messages)}, nil
}

// Close ends the connection.
func (c *Client) Close() error { return c.m.conn.Close() }

// Get gives a key's value; ErrNotFound where there is none.
func (c *Client) Get(ctx context.Context, key string) ([]byte, error) {
	return c.ask(ctx, request{op: opGet, key: key})
}

// Put sets a key's value.
func (c *Client) Put(ctx context.Context, key string, value []byte) error {
	_, err := c.ask(ctx, request{op: opPut, key: key, value: value})
	return err
}

// Delete takes a key out; ErrNotFound where there is none.
func (c *Client) Delete(ctx context.Context, key string) error {
	_, err := c.ask(ctx, request{op: opDelete, key: key})
	return err
}

// ask sends a request and waits for its answer. When ctx ends in between, the
// answer may still come: the connection is of no use any more.
func (c *Client) ask(ctx context.Context, r request) (value []byte, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.m.send(ctx, r.append); err != nil {
		return nil, err
	}
	if waitErr := c.m.receive(ctx, func(b []byte) error {
		value, err = parseAnswer(b)
		return nil
	}); waitErr != nil {
		c.m.conn.Disconnect()
		return nil, waitErr
	}
	return value, err
}
