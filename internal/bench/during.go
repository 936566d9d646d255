package bench

import "context"

// during does work while it watches the control connection. It receives at most one
// message, which it returns too; where early makes an error of that message, the
// error ends the work, as do the end of ctx and of the connection.
func (p *peer) during(ctx context.Context, work func(context.Context) error, early func(Message) error) (*Message, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done := make(chan error, 1)
	go func() { done <- work(ctx) }()

	var got *Message
	in, broken := p.in, p.ctx.Done()
	for {
		select {
		case err := <-done:
			if cause := context.Cause(ctx); err != nil && cause != nil {
				err = cause // the work's own error only follows from it
			}
			return got, err
		case m := <-in:
			got, in = &m, nil
			if err := early(m); err != nil {
				cancel(err)
			}
		case <-broken:
			broken = nil
			cancel(context.Cause(p.ctx))
		}
	}
}
