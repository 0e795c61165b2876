package bus

// HubCounts are the figures of a hub since it began.
type HubCounts struct {
	Clients, Routes   int // connections of processes, and of other hubs
	MessagesIn        int64
	MessagesOut       int64
	BytesIn, BytesOut int64
	Slow              int64  // connections that were closed, since they did not take their messages
	Queued            uint64 // messages in the queue: chunks, limits and what the cluster has to know
	QueuedBytes       uint64
}

// Counts returns the figures of this moment.
func (h *Hub) Counts() (c HubCounts, err error) {
	all, err := h.server.Varz(nil)
	if err != nil {
		return c, err
	}
	c = HubCounts{
		Clients: all.Connections, Routes: all.Routes, Slow: all.SlowConsumers,
		MessagesIn: all.InMsgs, MessagesOut: all.OutMsgs, BytesIn: all.InBytes, BytesOut: all.OutBytes,
	}
	queue, err := h.server.Jsz(nil)
	if err != nil {
		return c, err
	}
	c.Queued, c.QueuedBytes = queue.Messages, queue.Bytes
	return c, nil
}
